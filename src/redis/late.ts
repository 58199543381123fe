/** May what is sent now wait for the end of this turn of the event loop? */
export let isLate = false;

/**
 * What `send` sends is written at the end of this turn of the event loop, or with any other command
 * before: what messages and replies of one turn lead to is one write. For what no caller of this
 * process waits for.
 */
export function sendAtTurnEnd(send: () => void): void {
  isLate = true;
  try {
    send();
  } finally {
    isLate = false;
  }
}
