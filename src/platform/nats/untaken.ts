/**
 * Whether nobody took what was published: no stream has its subject now, or there is no JetStream at all. The library says the latter
 * of both, and does not export the class of what it throws.
 */
export const isUntaken = (error: unknown): boolean => error instanceof Error && error.name === 'JetStreamNotEnabled'
