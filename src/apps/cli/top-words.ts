/** What `top` can show, by its plural. */
export const topWords = ['nodes', 'pods'] as const
export type TopWord = (typeof topWords)[number]
export const topSorts = ['cpu', 'memory', 'disk'] as const
export type TopSort = (typeof topSorts)[number]
