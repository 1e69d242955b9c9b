/** Who may see what. */
export * from './types.ts'
