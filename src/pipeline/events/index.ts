/** What just changed: numbered, in order, replayable. */
export * from './types.ts'
