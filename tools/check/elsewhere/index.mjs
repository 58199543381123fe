// npm run test:elsewhere -- <where>: runs `npm test` on other servers or other versions of Node.js
// than those here. Each place documents its further arguments at its top.

const PLACES = {
  servers: () => import("./servers.mjs"),
  container: () => import("./container.ts"),
  image: () => import("./image.mjs"),
  node: () => import("./node.mjs"),
};

// The place reads the arguments after its name.
const [place = ""] = process.argv.splice(2, 1);
if (Object.hasOwn(PLACES, place)) await PLACES[place]();
else {
  console.error(`npm run test:elsewhere -- ${Object.keys(PLACES).join(" | ")}`);
  process.exitCode = 2;
}
