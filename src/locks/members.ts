import { show } from "../api/validate.ts";
import type { Member } from "../core/lock-kind.ts";
import { MEMBERS_MAX } from "../defaults.ts";
import { quote } from "../util/quote.ts";
import { keyOf } from "./holding.ts";

/** A lock among several, with the options of its object or its client. */
export interface ReentrantMember extends Member {
  /** May calls re-enter it if their scope holds it, unless they say otherwise? */
  readonly reentrant: boolean;
}

const CANNOT = "Cannot create a multi-lock";

/**
 * The members of a multi-lock, each once, in the order of their protocol and name by code units:
 * the same in every process, whatever its locale. `memberOf` finds the lock of a given object or
 * name. `options`: a further argument, from a caller without types.
 *
 * @throws TypeError, RangeError
 */
export function orderMembers(
  given: unknown,
  memberOf: (one: unknown) => ReentrantMember | null,
  options: unknown,
): readonly [ReentrantMember, ...ReentrantMember[]] {
  if (!Array.isArray(given)) throw new TypeError(`${CANNOT}: it takes an array, received ${show(given)}`);
  if (options !== undefined)
    throw new TypeError(
      `${CANNOT}: it has no options of its own, each member has: multiLock([locks.lock(name, { reentrant: false }), …])`,
    );
  const members = new Map<string, ReentrantMember>();
  for (const one of given as unknown[]) {
    const member = memberOf(one);
    if (!member)
      throw new TypeError(
        `${CANNOT}: its members must be names, or locks of this client, received ${show(one)}`,
      );
    const known = members.get(member.name);
    if (known && known.kind !== member.kind)
      throw new RangeError(
        `${CANNOT}: ${quote(member.name)} is named twice, as ${known.kind.label} and as ${member.kind.label}`,
      );
    if (!known || known.reentrant) members.set(member.name, member);
  }
  const [first, ...others] = [...members.values()]
    .map((member) => ({ member, key: keyOf(member.kind.protocol, member.name) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1))
    .map(({ member }) => member);
  if (!first || members.size > MEMBERS_MAX)
    throw new RangeError(`${CANNOT}: it takes 1 to ${MEMBERS_MAX} locks, received ${members.size}`);
  return [first, ...others];
}
