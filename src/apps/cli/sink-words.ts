/** Types of sinks that `init` writes; here, so that the command line knows them without loading the kinds. */
export const sinkWords = ['postgres', 'git', 's3', 'nats', 'kafka', 'none'] as const
/** What takes the rows; `none`: whoever calls `collect`. */
export type SinkWord = (typeof sinkWords)[number]
