const MiB = 2 ** 20

/** Bounds of what streams may ask of this process. Every one has a default that serves 10,000 agents. */
export interface StreamLimits {
  /** of one message as sent */
  readonly maxMessageBytes: number
  /** of one message of an original collector; a greater one is refused by its ack */
  readonly maxOriginalMessageBytes: number
  /** of one message of a stream that is not registered: a registration with a token, or a request to join */
  readonly maxNewcomerMessageBytes: number
  /** of such messages that have begun to come, of all streams together: twice what `maxUnnamed` of them can hold */
  readonly maxNewcomerBytes: number
  /** of one frame's body after inflating */
  readonly maxBodyBytes: number
  /** messages of one stream that may wait for the hub's log; the rest waits with the sender */
  readonly maxUnacked: number
  /** bytes of them */
  readonly maxUnackedBytes: number
  /** sustained rates of one stream; a burst may hold two seconds of messages and four of bytes */
  readonly messagesPerSecond: number
  readonly bytesPerSecond: number
  /** of bodies after inflating, sustained; a burst may hold four seconds of it */
  readonly inflatedBytesPerSecond: number
  /** frames of one credential that break the protocol, within a minute; then its stream ends */
  readonly maxBadFrames: number
  /** held back by its rate for so long without a pause, a stream ends with `rate` */
  readonly overRateMs: number
  /** what agents are told for their backlog */
  readonly backlogBytesPerSecond: number
  /** from the call to the registration */
  readonly registerMs: number
  /** how long a machine that is no member yet may wait on one stream for somebody's decision */
  readonly joinMs: number
  /** a connection is asked for a sign of life so often */
  readonly pingMs: number
  /** without a byte for so long it counts as cut, counted in sweeps: while this process stands still, none pass */
  readonly silentMs: number
  /** another owner without a word is asked for one, and given up where none comes */
  readonly keepaliveMs: number
  readonly keepaliveTimeoutMs: number
  readonly maxStreams: number
  readonly maxConnections: number
  /** TLS handshakes at once, half of them from one address at most; the others wait their turn */
  readonly maxHandshakes: number
  readonly handshakeMs: number
  /** connections that have not shaken hands; beyond it the oldest of the address with most of them is closed */
  readonly maxUnfinished: number
  /** from the connection to its first byte: one that says nothing takes no turn */
  readonly firstByteMs: number
  /** how long a handshake holds its turn; after that it goes on without one */
  readonly turnMs: number
  /** a connection without a stream is closed after it */
  readonly idleMs: number
  /** streams that showed no credential with the call and have not registered yet */
  readonly maxUnnamed: number
  /** how long a batch that the hub cannot take is held before its sender is told; an original cannot send it again */
  readonly holdMs: number
  readonly holdOriginalMs: number
  /** facts of an agent move state at most so often, unless it comes or goes */
  readonly factsEveryMs: number
  /** between two sweeps; the credentials of an open stream are looked at in every tenth, beside every change */
  readonly sweepMs: number
  /** from a goodbye to the end by force */
  readonly goodbyeMs: number
}

export const defaultLimits: StreamLimits = {
  maxMessageBytes: 16 * MiB,
  maxOriginalMessageBytes: 4 * MiB,
  maxNewcomerMessageBytes: MiB / 16,
  maxNewcomerBytes: 32 * MiB,
  maxBodyBytes: 32 * MiB,
  maxUnacked: 16,
  maxUnackedBytes: 24 * MiB,
  messagesPerSecond: 500,
  bytesPerSecond: 8 * MiB,
  inflatedBytesPerSecond: 16 * MiB,
  maxBadFrames: 5,
  overRateMs: 60_000,
  backlogBytesPerSecond: 2 * MiB,
  registerMs: 10_000,
  joinMs: 3_600_000,
  pingMs: 3_000,
  silentMs: 9_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  maxStreams: 12_000,
  maxConnections: 16_000,
  maxHandshakes: 64,
  handshakeMs: 15_000,
  maxUnfinished: 4_096,
  firstByteMs: 10_000,
  turnMs: 1_000,
  idleMs: 15_000,
  maxUnnamed: 256,
  holdMs: 10_000,
  holdOriginalMs: 60_000,
  factsEveryMs: 30_000,
  sweepMs: 1_000,
  goodbyeMs: 2_000,
}
