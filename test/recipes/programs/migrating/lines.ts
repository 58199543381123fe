/** What the shop prints, under a lock that works: eight customers want a shirt, and five shirts are there. */
export const LINES: readonly string[] = [
  "4 left",
  "3 left",
  "2 left",
  "1 left",
  "0 left",
  "sold out",
  "sold out",
  "sold out",
];
