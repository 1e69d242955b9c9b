import { rm, stat } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { type OwnerPlace, ownerOf } from '#model'
import type { Logger } from '#runtime'
import type { StreamLimits } from '../line/limits.ts'
import type { Arrival, LineSubscriber } from '../line/line.ts'
import { RelayDirectoryError } from './errors.ts'
import { FrontLink } from './front-link.ts'
import { GREETING_BYTES, greetingTo } from './messages.ts'
import { OwnerLink } from './owner-link.ts'
import { Waiting } from './waiting.ts'

export interface RelayOptions {
  readonly place: OwnerPlace
  /** of the sockets of all owners, `<index>.sock`; nobody but the user of the hub may look into it */
  readonly directory: string
  readonly limits: Pick<StreamLimits, 'registerMs' | 'sweepMs' | 'keepaliveMs' | 'keepaliveTimeoutMs'>
  readonly logger: Logger
  now(): number
  /** @param first its first message; absent: it has not come */
  serve(arrival: Arrival, first?: Uint8Array): LineSubscriber | undefined
  /** a stream that came to another owner, with its first message */
  serveRelayed(arrival: Arrival, first: Uint8Array): void
  /** streams were ended because their owner is away */
  onOwnerAway(streams: number): void
}

const GREETED_WITHIN_MS = 5_000
const MAX_FRONTS = 1_024
/** of the address of a socket in Linux, without its end */
const MAX_PATH = 107

/**
 * Brings streams to the process that owns their cluster, whichever of them they came to. The name a registration claims says
 * where it goes, and nothing else: whose it is decides the session, there.
 */
export class Relay implements AsyncDisposable {
  readonly #options: RelayOptions
  readonly #server: Server
  readonly #waiting: Waiting
  readonly #owners = new Map<number, OwnerLink>()
  readonly #fronts = new Set<FrontLink>()
  readonly #strangers = new Set<Socket>()
  #idle: (() => void) | undefined

  private constructor(options: RelayOptions) {
    this.#options = options
    const { limits, now, serve } = options
    this.#waiting = new Waiting({
      patienceMs: limits.registerMs,
      now,
      serve: (arrival) => serve(arrival),
      claims: (arrival, first, cluster) => this.#claims(arrival, first, cluster),
    })
    this.#server = createServer((socket) => this.#greeted(socket))
    this.#server.maxConnections = MAX_FRONTS
  }

  /**
   * Other owners reach this one when it resolves.
   * @throws RelayDirectoryError; the system's error where the socket cannot be had
   */
  static async open(options: RelayOptions): Promise<Relay> {
    const { directory, place } = options
    await checkDirectory(directory)
    const relay = new Relay(options)
    const path = pathOf(directory, place.index)
    if (Buffer.byteLength(path) > MAX_PATH)
      throw new RelayDirectoryError(directory, 'its path is too long for a socket')
    // One that was killed leaves its socket behind.
    await rm(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      relay.#server.once('error', reject)
      // Workers of node:cluster would listen by their primary, for all of them.
      relay.#server.listen({ path, exclusive: true }, () => {
        relay.#server.off('error', reject)
        resolve()
      })
    })
    return relay
  }

  /** streams whose first message has not come */
  get waiting(): number {
    return this.#waiting.streams
  }

  /** those of them that did not prove who they are */
  get unproven(): number {
    return this.#waiting.unproven
  }

  /** streams that came here and belong to others */
  get carried(): number {
    let streams = 0
    for (const owner of this.#owners.values()) streams += owner.streams
    return streams
  }

  /** Takes a stream that came here: to its session or to its owner, once it says whose it is. */
  take(arrival: Arrival, isProven: boolean): void {
    this.#waiting.hold(arrival, isProven)
  }

  /** every `sweepMs` */
  sweep(): void {
    this.#waiting.sweep()
    for (const owner of [...this.#owners.values()]) owner.sweep()
  }

  /** Nothing is waited for any more, and the owners end what is carried for them. Resolves when no stream is left here. */
  async stop(): Promise<void> {
    this.#waiting.stop()
    for (const owner of this.#owners.values()) owner.stop()
    if (this.#isIdle) return
    await new Promise<void>((resolve) => {
      this.#idle = resolve
    })
  }

  /** What is left is cut off. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    for (const socket of this.#strangers) socket.destroy()
    await Promise.all([...this.#owners.values(), ...this.#fronts].map((link) => link[Symbol.asyncDispose]()))
    await closed
  }

  get #isIdle(): boolean {
    return this.carried === 0 && [...this.#fronts].every((front) => front.streams === 0)
  }

  #gone() {
    if (this.#idle && this.#isIdle) this.#idle()
  }

  #claims(arrival: Arrival, first: Uint8Array, cluster: string | undefined) {
    const { place, serve } = this.#options
    const owner = cluster === undefined ? place.index : ownerOf(cluster, place.of)
    if (owner === place.index) serve(arrival, first)
    else this.#linkTo(owner).carry(arrival, first)
  }

  #linkTo(owner: number): OwnerLink {
    const { place, directory, limits, logger, onOwnerAway } = this.#options
    const open = this.#owners.get(owner)
    if (open) return open
    const link = new OwnerLink({
      path: pathOf(directory, owner),
      greeting: greetingTo(owner, place.of),
      quietSweeps: Math.ceil(limits.keepaliveMs / limits.sweepMs),
      patientSweeps: Math.ceil(limits.keepaliveTimeoutMs / limits.sweepMs),
      onGone: () => this.#gone(),
      closed: (streams) => {
        this.#owners.delete(owner)
        if (streams > 0) {
          logger.warn({ owner, streams }, 'another owner of clusters is away: its streams that came here were ended')
          onOwnerAway(streams)
        }
        this.#gone()
      },
    })
    this.#owners.set(owner, link)
    return link
  }

  #greeted(socket: Socket) {
    const { place, now, serveRelayed, logger } = this.#options
    const patience = setTimeout(() => socket.destroy(), GREETED_WITHIN_MS)
    this.#strangers.add(socket)
    const over = () => {
      clearTimeout(patience)
      this.#strangers.delete(socket)
      socket.off('readable', hear).off('error', over).off('close', over)
    }
    const hear = () => {
      const said: Buffer | null = socket.read(GREETING_BYTES)
      if (said === null) return
      over()
      if (!said.equals(greetingTo(place.index, place.of))) {
        logger.warn(
          { owner: place.index },
          'something came to the socket of this owner that is no front of this division',
        )
        socket.on('error', () => undefined).destroy() // nobody is heard any more
        return
      }
      const front: FrontLink = new FrontLink({ socket, now, serve: serveRelayed, onGone: () => this.#gone() })
      this.#fronts.add(front)
      socket.once('close', () => {
        this.#fronts.delete(front)
        this.#gone()
      })
    }
    socket.on('readable', hear).on('error', over).on('close', over)
  }
}

const pathOf = (directory: string, index: number) => join(directory, `${index}.sock`)

async function checkDirectory(directory: string): Promise<void> {
  const facts = await stat(directory).catch((cause: unknown) => {
    throw new RelayDirectoryError(directory, 'it cannot be read', { cause })
  })
  if (!facts.isDirectory()) throw new RelayDirectoryError(directory, 'it is none')
  if (facts.uid !== process.getuid?.()) throw new RelayDirectoryError(directory, 'it belongs to another user')
  if ((facts.mode & 0o077) !== 0)
    throw new RelayDirectoryError(directory, 'others may look into it; its mode must be 0700')
}
