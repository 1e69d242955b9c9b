/** One end of a stream of encoded messages; tests have one in memory, the real one is grpc.ts. */
export interface Link extends AsyncDisposable {
  /** @returns false: the other end does not read as fast; wait for `writable` */
  send(message: Uint8Array): boolean
  /** resolves when more may be sent, or the link has ended */
  writable(): Promise<void>
  /** messages in order; ends when the stream ends, throws LinkError when it broke */
  readonly messages: AsyncIterable<Uint8Array>
}

/** What the hub tells a member of itself. */
export interface HubTrust {
  /** PEM of the authorities it is known by from now on; '': as before */
  readonly roots: string
  /** host:port where it is from now on, in the order they are to be tried; none: as before */
  readonly addresses: readonly string[]
}

/** A way to the hub: gRPC, or a pair of queues in tests. */
export interface Transport {
  /** @throws LinkError where the hub cannot be reached or refuses */
  open(signal: AbortSignal): Promise<Link>
}
