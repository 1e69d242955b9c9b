/** How rows are written. */
export const collectFormats = ['ndjson', 'yaml', 'json'] as const
export type CollectFormat = (typeof collectFormats)[number]

/** What is told: progress and what came of it (debug, info), what went wrong (warn), why nothing was collected (error). */
export const collectLevels = ['debug', 'info', 'warn', 'error'] as const
export type CollectLevel = (typeof collectLevels)[number]
