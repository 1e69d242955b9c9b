import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '#runtime'
import { encodeRequest } from '#wire'
import { defaultLimits } from '../../line/limits.ts'
import type { Arrival, Line, LineSubscriber } from '../../line/line.ts'
import { hello } from '../../stream/test/own-agent.ts'
import { Relay } from '../relay.ts'
import { namesOf } from './words.ts'

/** The line to a peer that reads when the test says so. */
export class TestPeer implements Line {
  subscriber: LineSubscriber | undefined
  readonly heard: Uint8Array[] = []
  bytes = 0
  allowed = 0
  isSlow = false
  status: { readonly status: number; readonly details: string } | undefined

  subscribe(subscriber: LineSubscriber): void {
    this.subscriber = subscriber
  }

  allow(): void {
    this.allowed++
  }

  write(message: Uint8Array): boolean {
    this.heard.push(message)
    this.bytes += message.length
    return !this.isSlow
  }

  end(status: number, details: string): void {
    this.status = { status, details }
  }

  /** It has read everything. */
  drain(): void {
    this.isSlow = false
    this.subscriber?.drained()
  }
}

/** A stream as it is at its front, and as it arrived at its owner. */
export interface TestStream {
  readonly peer: TestPeer
  readonly arrival: Arrival
}

/** Two ends of a relay, with nothing but lines: streams go from the first to the second owner. */
export async function aRelay() {
  const directory = await mkdtemp(join(tmpdir(), 'relay-'))
  const arrived: { readonly arrival: Arrival; readonly first: Uint8Array }[] = []
  const waiting: (() => void)[] = []
  const open = (index: number) =>
    Relay.open({
      place: { index, of: 2 },
      directory,
      limits: defaultLimits,
      logger: silentLogger,
      now: () => Date.now(),
      serve: () => undefined,
      serveRelayed: (arrival, first) => {
        arrived.push({ arrival, first })
        for (const wake of waiting.splice(0)) wake()
      },
      onOwnerAway: () => undefined,
    })
  const [front, owner] = [await open(1), await open(2)]
  const [cluster = ''] = namesOf(2, 2, 1)
  const first = encodeRequest({ payload: hello({ cluster }) })
  let count = 0
  return {
    front,
    owner,
    /** of the owner's socket */
    path: join(directory, '2.sock'),
    async stream(subscriber: Partial<LineSubscriber> = {}): Promise<TestStream> {
      const peer = new TestPeer()
      const name = `peer-${count++}`
      front.take({ line: peer, peer: name, presented: { address: 'here' }, since: Date.now() }, true)
      peer.subscriber?.message(first)
      for (;;) {
        const found = arrived.find(({ arrival }) => arrival.peer === name)
        if (found) {
          const nothing = () => undefined
          const deaf = { message: nothing, finished: nothing, drained: nothing, stopping: nothing, closed: nothing }
          found.arrival.line.subscribe({ ...deaf, ...subscriber })
          return { peer, arrival: found.arrival }
        }
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([front[Symbol.asyncDispose](), owner[Symbol.asyncDispose]()])
      await rm(directory, { recursive: true, force: true })
    },
  }
}
