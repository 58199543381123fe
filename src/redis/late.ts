/** May a command that is sent now wait for the end of this turn of the event loop? */
export let isLate = false;

/**
 * Commands that `send` sends are written at the end of this turn of the event loop, or with any
 * earlier command, so all messages and replies of one turn lead to one write. For commands that no
 * caller of this process waits for.
 */
export function sendAtTurnEnd(send: () => void): void {
  isLate = true;
  try {
    send();
  } finally {
    isLate = false;
  }
}
