/** One client per cluster: credentials, pool, circuit breaker, discovery, paged list, watch, apply. */
export * from './types.ts'
