import { warn } from "../../util/warn.ts";

/**
 * Makes listeners of channels that never throw: Node.js turns an error of such a listener into an
 * uncaught error, so a tracer or meter would end the process. The first error is a process warning,
 * the others are not: a failure may occur at every call.
 */
export function guard(): <Message>(listener: (message: Message) => void) => (message: unknown) => void {
  let hasWarned = false;
  return (listener) => (message) => {
    try {
      listener(message as Parameters<typeof listener>[0]);
    } catch (error) {
      if (!hasWarned) warn(error instanceof Error ? error : String(error));
      hasWarned = true;
    }
  };
}
