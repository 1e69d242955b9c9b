import { Type } from 'typebox'

/** One of these words: an `enum` of the schema. */
export const OneOf = <const W extends string>(
  words: readonly W[],
  options: { readonly description: string; readonly default?: W },
) => Type.Unsafe<W>({ type: 'string', enum: [...words], ...options })
