import { findAll, parsePath } from '#path'

/**
 * Compiles the paths that printer columns use: `.a.b`, `['a']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`, dots escaped by `\`.
 * @returns undefined where the text is no such path.
 */
export function compilePath(text: string): ((value: unknown) => readonly unknown[]) | undefined {
  if (!/^(?:\{\s*)?\$?[.[]/.test(text)) return undefined
  const { path } = parsePath(text)
  if (!path || path.emptyKeyAt !== undefined) return undefined
  return (value) => findAll(value, path.segments).values
}
