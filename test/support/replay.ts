import { connect } from "node:net";
import { FrameReader } from "./resp.ts";

/**
 * Sends the bytes of a command to a server on a separate connection. Resolves when Redis has
 * answered, whatever the answer.
 */
export function replay(target: { host: string; port: number }, frame: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ ...target, noDelay: true });
    const replies = new FrameReader();
    socket.on("connect", () => socket.write(frame));
    socket.on("data", (chunk) => {
      if (replies.read(chunk).length === 0) return;
      resolve();
      socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => reject(new Error("Redis closed the connection before it answered.")));
  });
}
