// A process that keeps a Redis in a container for the process that forked it, and removes the
// container when that process disconnects or is gone, however it ended. Only this process loads
// testcontainers, which takes half a second and listens to the signals of its process. See
// container.ts.
import { GenericContainer, getContainerRuntimeClient, Wait } from "testcontainers";

/**
 * The keeper's task, as JSON in its first argument. Without an image it only checks whether Docker
 * answers.
 */
export interface Order {
  image?: string;
  /** More arguments for the server; later ones override ours. */
  args?: string[];
}

/** Its messages, in this order; an error is the last one. */
export type News = "Docker answers" | { host: string; port: number } | { error: string };

const PORT = 6379;

// Callers come from outside the container, and a protected server without a password refuses them.
const COMMAND = ["redis-server", "--protected-mode", "no", "--save", "", "--appendonly", "no"];

/** A working Docker answers at once; a hanging one must not hang its caller. */
const DOCKER_ANSWERS_WITHIN_MS = 10_000;

class Published extends GenericContainer {
  readonly #address: string;
  #id: string | undefined;

  constructor(image: string, address: string) {
    super(image);
    this.#address = address;
  }

  /**
   * A server without a password is for this machine only; testcontainers would publish it to the
   * whole network.
   */
  protected override async beforeContainerCreated(): Promise<void> {
    this.hostConfig.PortBindings = { [`${PORT}/tcp`]: [{ HostIp: this.#address, HostPort: "0" }] };
  }

  protected override async containerCreated(id: string): Promise<void> {
    this.#id = id;
  }

  /** Removes the remains of a failed start. */
  async discard(): Promise<void> {
    if (this.#id === undefined) return;
    const { container } = await getContainerRuntimeClient();
    await container.getById(this.#id).remove({ force: true, v: true });
  }
}

async function start(image: string, args: string[], dockerHost: string) {
  const host = dockerHost === "localhost" ? "127.0.0.1" : dockerHost;
  const container = new Published(image, host === "127.0.0.1" ? host : "")
    .withCommand([...COMMAND, ...args])
    .withExposedPorts(PORT)
    .withWaitStrategy(Wait.forLogMessage("Ready to accept connections"))
    // The keeper is the reaper: no second image has to be pulled.
    .withAutoCleanup(false);
  try {
    const started = await container.start();
    return { started, host, port: started.getMappedPort(PORT) };
  } catch (error) {
    await container.discard().catch(() => {});
    const why = error instanceof Error ? error.message : String(error);
    return leave({ error: `no container of the image ${image} could be started: ${why}` });
  }
}

async function dockerHost(): Promise<string> {
  const late = setTimeout(() => leave({ error: "no Docker answers" }), DOCKER_ANSWERS_WITHIN_MS);
  try {
    return (await getContainerRuntimeClient()).info.containerRuntime.host;
  } catch {
    return leave({ error: "no Docker answers" });
  } finally {
    clearTimeout(late);
  }
}

function tell(news: News): Promise<void> {
  return new Promise((sent) => {
    if (process.connected) process.send?.(news, () => sent());
    else sent();
  });
}

async function leave(news: News): Promise<never> {
  await tell(news);
  process.exit();
}

const { image, args = [] } = JSON.parse(process.argv[2] ?? "{}") as Order;
const gone = new Promise((resolve) => process.once("disconnect", resolve));
const docker = await dockerHost();
await tell("Docker answers");
if (image !== undefined) {
  const { started, host, port } = await start(image, args, docker);
  await tell({ host, port });
  await gone;
  // Nothing is saved, so the end need not wait.
  await started.stop({ timeout: 0 });
}
process.exit();
