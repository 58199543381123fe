import ts from "typescript";

/** A comment of a file, with its markers. */
export interface Comment {
  readonly pos: number;
  readonly end: number;
  readonly isBlock: boolean;
}

/** The comments of a TypeScript or JavaScript file, in no order. */
export function scriptComments(file: ts.SourceFile): Comment[] {
  const found = new Map<number, Comment>();
  const visit = (node: ts.Node): void => {
    for (const { pos, end, kind } of [
      ...(ts.getLeadingCommentRanges(file.text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(file.text, node.getFullStart()) ?? []),
    ])
      found.set(pos, { pos, end, isBlock: kind === ts.SyntaxKind.MultiLineCommentTrivia });
    for (const child of node.getChildren(file)) visit(child);
  };
  visit(file);
  return [...found.values()];
}
