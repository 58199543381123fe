// npm run test:elsewhere -- <where>: what `npm test` runs, on other servers or other versions of
// Node.js than those here. Each place says at its top which further arguments it takes.

const PLACES = {
  servers: () => import("./servers.mjs"),
  container: () => import("./container.ts"),
  image: () => import("./image.mjs"),
  node: () => import("./node.mjs"),
};

// The place reads what stands behind its name.
const [place = ""] = process.argv.splice(2, 1);
if (Object.hasOwn(PLACES, place)) await PLACES[place]();
else {
  console.error(`npm run test:elsewhere -- ${Object.keys(PLACES).join(" | ")}`);
  process.exitCode = 2;
}
