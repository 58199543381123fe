import type { RenewAnswer } from "../redis/replies.ts";
import type { QuorumNode } from "./node.ts";
import type { Completion } from "./repair.ts";
import type { Quorum } from "./votes.ts";

interface Word {
  readonly node: QuorumNode;
  readonly answer: RenewAnswer;
}

/**
 * Raises the TTL of a hold at every node. Only the word of nodes that count renews the lease, because a holder that has
 * lost a majority must learn of it. What else the answers tell goes to its completion.
 */
export async function renewEverywhere(
  quorum: Quorum,
  { name, id }: { readonly name: string; readonly id: string },
  ttl: number,
  timeout: number,
  completion: Completion | undefined,
): Promise<RenewAnswer> {
  const counts = (node: QuorumNode): boolean => completion?.footing.counts(node) ?? true;
  const learn = completion?.asking();
  const words = quorum.ask(
    name,
    async (node): Promise<Word> => {
      const answer = await node.renew(name, id, ttl, timeout);
      if (answer.is === "renewed") await completion?.footing.heard(node);
      return { node, answer };
    },
    counts,
  );
  const decision = await quorum.count<Word, RenewAnswer>(words, ({ answers }) => {
    const renewed = answers.filter(({ node, answer }) => answer.is === "renewed" && counts(node));
    if (quorum.isMajority(renewed.length))
      return { is: "renewed", ttl: Math.min(...renewed.map(({ answer }) => answer.ttl)) };
    // Gone is only said when so many nodes have said so; one that does not answer may still have it.
    const unheard = completion?.footing.unheard(answers) ?? quorum.unheard(answers);
    if (quorum.isMajority(renewed.length + unheard)) return undefined;
    return { is: answers.some(({ answer }) => answer.is === "taken") ? "taken" : "gone", ttl: 0 };
  });
  // RACE: if this were learned as the answers come, a node that lost the key would be asked to take it again also where the
  // others have lost it too.
  if (decision.is === "renewed" && completion && learn) {
    const heard = words.map((word) => word.then(({ node, answer }) => learn(node, answer)));
    void Promise.allSettled(heard).then((all) =>
      completion.asked(quorum.nodes.filter((_, i) => all[i]?.status === "rejected")),
    );
  }
  return decision;
}
