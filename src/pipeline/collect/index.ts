/** Functions from a cluster to snapshots. */
export * from './types.ts'
