/**
 * A hub in several processes: others of this program are started and kept running, and they talk over channels of framed
 * messages with bytes beside them.
 *
 *   KeptProcess ── starts, starts again, ends ──► a child, which finds `channelToParent`
 *   Channel     ── tell, ask, over any Duplex: the pipe to a child, a socket between two of them
 *
 * Both ends are of one version and one user. Who may do what is not decided here.
 */
export { Channel, type ChannelEnd, OtherProcessError, OtherProcessGoneError } from './channel.ts'
export { channelToParent, isChild, KeptProcess, type KeptProcessOptions, type Program } from './kept-process.ts'
