/** What `top` shows at "?". */
export const TOP_HELP: readonly string[] = [
  "q          quit; so does Ctrl-C",
  "↑ ↓        select a lock",
  "s          sort by the longest wait, by the time held, or by name",
  "/          show only names with what is typed then; Enter ends the typing, Esc shows all again",
  "b          break: take the selected lock away from its holder, after a question",
  "?          this help; any key leaves it",
  "",
  "HELD is how long the holder has had the lock, and LEFT how much of its lease is left.",
  "WAITING PROCS counts the processes that wait, however many callers of each do. LONGEST is the longest wait.",
];

export const keysInWords = (columns: number): string =>
  columns < 64
    ? "q quit  s sort  / filter  b break  ? help"
    : "q quit   s sort   / filter   ↑ ↓ select   b break its holder   ? help";
