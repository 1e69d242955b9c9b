/** What is true now, read from memory and written behind to Redis or LMDB. */
export * from './types.ts'
