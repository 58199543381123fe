// Makes a container image of the redis-server (or valkey-server) on the PATH and the libraries that
// it needs, for a machine that reaches no image registry. It wants a Docker that answers, and
// Linux:
//
//   npm run test:elsewhere -- image
//   TEST_REDIS_IMAGE=holdfast-redis npm run test:elsewhere -- container
//
// If no Docker runs, Debian's engine is enough, started by hand as root and without touching the
// firewall:
//
//   apt-get install -y --no-install-recommends docker.io
//   dir=$(mktemp -d); export DOCKER_HOST=unix://$dir/docker.sock
//   dockerd --data-root $dir/data --exec-root $dir/exec --pidfile $dir/pid -H $DOCKER_HOST \
//     --iptables=false --ip6tables=false >$dir/log 2>&1 &
//   until docker info >/dev/null 2>&1; do sleep 0.2; done
//
// On a machine that is itself a container, TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1 names the host on
// which its own Docker publishes ports. At the end: kill $(cat $dir/pid), and ip link delete
// docker0.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";

const name = process.argv[2] ?? "holdfast-redis";

/** The path of the first of these programs on the PATH. */
function onPath(...programs) {
  for (const program of programs) {
    try {
      return execFileSync("/bin/sh", ["-c", `command -v ${program}`], { encoding: "utf8" }).trim();
    } catch {}
  }
  throw new Error(`None of these is on the PATH: ${programs.join(", ")}`);
}

const server = onPath("redis-server", "valkey-server");
// Every path that ldd names, after an arrow or alone: the libraries and the loader.
const libraries = execFileSync("ldd", [server], { encoding: "utf8" }).match(/\/\S+(?= \(0x)/g) ?? [];
const files = [server, ...libraries].map((path) => path.slice(1));

// Follows links, so that each file is where the loader expects it. The server has one name and
// place.
const rename = `s,^${server.slice(1)}$,usr/bin/redis-server,`;
const tar = spawn("tar", ["-C", "/", "-ch", "--transform", rename, ...files], {
  stdio: ["ignore", "pipe", "inherit"],
});
const changes = ["ENV PATH=/usr/bin", "EXPOSE 6379", 'CMD ["redis-server"]'];
const imported = spawn(
  "docker",
  ["import", ...changes.flatMap((change) => ["--change", change]), "-", name],
  { stdio: [tar.stdout, "inherit", "inherit"] },
);
// The importer has its own copy of the pipe; ours would keep it open when the importer ends early.
tar.stdout.destroy();

const [[tarCode], [importCode]] = await Promise.all([once(tar, "exit"), once(imported, "exit")]);
if (tarCode !== 0 || importCode !== 0)
  throw new Error(`Failed: tar ended with ${tarCode}, docker import with ${importCode}`);
console.log(`Image ${name}: ${server} and ${libraries.length} libraries`);
