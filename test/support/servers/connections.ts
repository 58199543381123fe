import type { Redis } from "ioredis";
import { type Address, type Connection, type ConnectOptions, openConnection } from "./connection.ts";

/** The connections of one topology, to be closed together. */
export class Connections {
  readonly #open = new Set<Connection>();
  readonly #admins = new Map<number, Redis>();

  open(address: Address, options?: ConnectOptions): Connection {
    const connection = openConnection(address, options);
    this.#open.add(connection);
    connection.once("end", () => this.#open.delete(connection));
    return connection;
  }

  /** The only direct connection to this server; made on first use, and again after its end. */
  admin(server: { port: number }, options: object = {}): Redis {
    const known = this.#admins.get(server.port);
    if (known !== undefined && known.status !== "end") return known;
    const admin = openConnection({ redis: { host: "127.0.0.1", port: server.port, ...options } }) as Redis;
    this.#admins.set(server.port, admin);
    return admin;
  }

  close(): void {
    for (const connection of [...this.#open, ...this.#admins.values()]) connection.disconnect();
    this.#open.clear();
    this.#admins.clear();
  }
}
