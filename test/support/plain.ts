/** A reply to a script as tests write it: without Buffers. */
export function plain(reply: unknown): unknown {
  if (Buffer.isBuffer(reply)) return reply.toString();
  return Array.isArray(reply) ? reply.map(plain) : reply;
}
