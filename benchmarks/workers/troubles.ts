const MESSAGES = 5;

/** Counts errors, and keeps the first few different messages. */
export class Troubles {
  count = 0;
  readonly messages: string[] = [];

  add(error: unknown): void {
    this.count++;
    const message = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    if (this.messages.length < MESSAGES && !this.messages.includes(message)) this.messages.push(message);
  }
}
