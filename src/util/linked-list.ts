/** A member of at most one list at a time. Only `LinkedList` writes these. */
export interface Linked {
  list: object | null;
  next: this | null;
  previous: this | null;
}

/**
 * A set in the order of insertion, whose members are its links. Adding and deleting cost a few
 * writes, where a Set gives each object a hash, and grows and shrinks a table.
 *
 * A loop over it may delete the member that it has reached, but no other one: spread it first.
 */
export class LinkedList<T extends Linked> {
  first: T | null = null;
  last: T | null = null;
  size = 0;

  has(member: T): boolean {
    return member.list === this;
  }

  add(member: T): void {
    if (member.list === this) return;
    member.list = this;
    member.previous = this.last;
    if (this.last) this.last.next = member;
    else this.first = member;
    this.last = member;
    this.size++;
  }

  addFirst(member: T): void {
    member.list = this;
    member.next = this.first;
    if (this.first) this.first.previous = member;
    else this.last = member;
    this.first = member;
    this.size++;
  }

  /** Returns whether it was a member. */
  delete(member: T): boolean {
    if (member.list !== this) return false;
    const { next, previous } = member;
    if (previous) previous.next = next;
    else this.first = next;
    if (next) next.previous = previous;
    else this.last = previous;
    member.list = member.next = member.previous = null;
    this.size--;
    return true;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let member = this.first, next: T | null; member; member = next) {
      next = member.next;
      yield member;
    }
  }
}
