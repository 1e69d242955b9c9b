/** Informers, work queue, reconcilers, leader election. */
export * from './types.ts'
