/*
 * People of the bench, each with a stream of its own, signed in by headers of a proxy. Plain streams are searched for marks as text comes;
 * one stream in ten is packed, as browsers ask for it.
 *
 *   viewers.ts {"url":…,"people":[{"user":…,"groups":…,"query":…,"isPacked":…}, …]}
 *
 * Says `ready` when each was shown its first rows; asked, what came to each.
 */
import { get, type IncomingMessage } from 'node:http'
import { createGunzip } from 'node:zlib'
import { EventReader, type StreamedMessage } from '../../src/contract/http/stream-client.ts'
import { mark, nowMs } from './mark.ts'

export interface Person {
  readonly user: string
  readonly groups: string
  /** of /api/v1/stream */
  readonly query: string
  readonly isPacked: boolean
  /** reads every message, to tell where the time goes */
  readonly isProbe: boolean
}

/** What came to one person. */
export interface Came {
  /** from the change to the person, ms, by the number of the change; each counts once */
  readonly late: readonly (readonly [number: number, ms: number])[]
  readonly bytes: number
}

/** Parts of the way of one change, ms. */
export interface Stages {
  /** from the change in the member until the hub made a step of it */
  readonly toStep: readonly number[]
  /** from there until it was received by the hub's ingest */
  readonly toIngest: readonly number[]
  /** from there until it stood in the viewer */
  readonly toViewer: readonly number[]
}

const { url, people } = JSON.parse(process.argv[2] ?? '{}') as { url: string; people: readonly Person[] }
const stages: { toStep: number[]; toIngest: number[]; toViewer: number[] } = { toStep: [], toIngest: [], toViewer: [] }

class Viewer {
  readonly late = new Map<number, number>()
  bytes = 0
  #rest = ''
  #isReady = false
  readonly #events = new EventReader()
  readonly ready: Promise<void>
  #begin: () => void = () => undefined

  constructor(person: Person) {
    this.ready = new Promise((resolve, reject) => {
      this.#begin = resolve
      const headers = {
        'x-forwarded-user': person.user,
        'x-forwarded-groups': person.groups,
        ...(person.isPacked && { 'accept-encoding': 'gzip' }),
      }
      get(`${url}/api/v1/stream?${person.query}`, { headers, agent: false }, (answer) => {
        if (answer.statusCode !== 200) reject(new Error(`a stream was refused: ${answer.statusCode}`))
        else this.#read(answer, person)
      }).on('error', reject)
    })
  }

  #read(answer: IncomingMessage, { isPacked, isProbe }: Person): void {
    answer.on('data', (bytes: Buffer) => {
      this.bytes += bytes.length
    })
    const text = isPacked ? answer.pipe(createGunzip()) : answer
    text.setEncoding('latin1').on('data', (piece: string) => this.#take(piece, isProbe))
    answer.on('close', () => {
      throw new Error('a stream ended')
    })
  }

  #take(piece: string, isProbe: boolean): void {
    const now = nowMs()
    const text = this.#rest + piece
    if (!this.#isReady && text.includes('"isLast":true')) {
      this.#isReady = true
      this.#begin()
    }
    // Before its rows count as seen: a row comes again when what it uses is measured.
    if (isProbe) for (const message of this.#events.take(piece)) noteStages(message, now, this.late)
    for (const [, at, number] of text.matchAll(mark))
      if (!this.late.has(Number(number))) this.late.set(Number(number), now - Number(at))
    this.#rest = text.slice(-200)
  }
}

function noteStages(message: StreamedMessage, now: number, seen: ReadonlyMap<number, number>): void {
  if (message.kind !== 'rowsChange') return
  const ages = new Map(
    message.changes.flatMap((one) => (one.op === 'age' ? [[one.age.cluster, one.age.freshness] as const] : [])),
  )
  for (const one of message.changes) {
    if (one.op !== 'put') continue
    const [age, said] = [ages.get(one.row.cluster), one.row.values.message]
    const found = typeof said === 'string' ? [...said.matchAll(mark)][0] : undefined
    if (!age || !found || seen.has(Number(found[2]))) continue
    const madeAt = Number(found[1])
    stages.toStep.push(age.observedAt - madeAt)
    stages.toIngest.push(age.receivedAt - age.observedAt)
    stages.toViewer.push(now - age.receivedAt)
  }
}

const viewers: Viewer[] = []
for (let opened = 0; opened < people.length; opened += 20) {
  const some = people.slice(opened, opened + 20).map((person) => new Viewer(person))
  await Promise.all(some.map(({ ready }) => ready))
  viewers.push(...some)
}
process.on('message', () => {
  const came: readonly Came[] = viewers.map(({ late, bytes }) => ({ late: [...late], bytes }))
  process.send?.({ came, stages: stages satisfies Stages })
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
