import { Socket } from "node:net";

type Write = Parameters<NonNullable<Socket["_write"]>>;
type Writev = Parameters<NonNullable<Socket["_writev"]>>;

/**
 * Counts what this process writes to sockets from now on: each is one write(2), or one writev(2)
 * for what was corked.
 */
export function countWrites(): () => number {
  let written = 0;
  const { _write, _writev } = Socket.prototype;
  Socket.prototype._write = function (this: Socket, ...args: Write) {
    written += 1;
    _write.apply(this, args);
  };
  Socket.prototype._writev = function (this: Socket, ...args: Writev) {
    written += 1;
    _writev?.apply(this, args);
  };
  return () => written;
}
