import type { Check, Run } from "../run.ts";

/** Of the world itself: its network invents nothing. */
export const messages = (run: Run): Check => ({
  promise: "A client receives a message once for each of its subscriptions, and at most that often.",
  inspect() {
    const received = run.started.reduce((sum, { network }) => sum + network.receivedCount, 0);
    const { told } = run.server;
    if (received > told) run.fail(`${received} messages were received, and Redis has sent ${told}`);
  },
});
