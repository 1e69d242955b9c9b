import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { ChannelCredentials, Client, type ClientDuplexStream, Metadata } from '@grpc/grpc-js'
import { COLLECTOR_METHOD, decodeResponse, encodeRequest, ownOffer } from '#wire'
import { clusterName } from '../baseline/fleet.ts'
import { type Messages, type Mode, messagesOf } from './messages.ts'

/* Agents: each with a connection and a stream of its own, one batch under way, the next as soon as that is acknowledged. */

export interface ClientsResult {
  readonly seconds: number
  readonly acks: number
  /** since the first one, warming included */
  readonly allAcks: number
  readonly refused: number
  readonly p50: number
  readonly p99: number
  readonly upBytes: number
  readonly downBytes: number
  /** from the first dial to the first ack of the last agent, ms */
  readonly allStreamingMs: number
}

const { mode, streams, nodes, port, caFile, seconds, warmSeconds } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly mode: Mode
  readonly streams: number
  readonly nodes: number
  readonly port: number
  readonly caFile: string
  readonly seconds: number
  readonly warmSeconds: number
}

const credentials = ChannelCredentials.createSsl(readFileSync(caFile))
const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const messages: Messages = messagesOf(mode, nodes)
const begun = performance.now()
let measuring = false
let running = true
let streaming = 0
let allStreamingMs = 0
let allAcks = 0
let [acks, refused, upBytes, downBytes] = [0, 0, 0, 0]
let latencies: number[] = []

class Agent {
  readonly #index: number
  readonly #call: ClientDuplexStream<Uint8Array, Uint8Array>
  #sequence = 0
  #sentAt = 0
  #isStreaming = false

  constructor(index: number) {
    this.#index = index
    const client = new Client(`127.0.0.1:${port}`, credentials, { 'grpc.use_local_subchannel_pool': 1 })
    const metadata = new Metadata()
    metadata.set('authorization', `Bearer token-${index}`)
    this.#call = client.makeBidiStreamRequest(COLLECTOR_METHOD, asBuffer, (bytes) => bytes, metadata)
    this.#call.on('data', (bytes: Uint8Array) => this.#heard(bytes))
    this.#call.on('error', (error) => {
      if (running) process.stderr.write(`stream ${index}: ${error.message}\n`)
    })
    const clusterNameText = clusterName(index)
    const register = { clusterName: clusterNameText, token: `token-${index}`, version: 'bench' }
    const hello = { ...ownOffer, capabilities: [...ownOffer.capabilities], origin: `bench-${index}`, nowMs: Date.now() }
    const value = mode === 'original' ? register : { ...register, hello }
    this.#call.write(encodeRequest({ payload: { case: 'register', value } }))
    if (mode === 'original') this.#next()
  }

  #heard(bytes: Uint8Array) {
    if (measuring) downBytes += bytes.length + 5
    const { payload } = decodeResponse(bytes)
    if (payload.case === 'welcome') this.#next()
    if (payload.case === 'goodbye') process.stderr.write(`goodbye: ${payload.value.code}\n`)
    if (payload.case !== 'ack') return
    if (!this.#isStreaming) {
      this.#isStreaming = true
      if (++streaming === streams) allStreamingMs = performance.now() - begun
    }
    if (payload.value.success) allAcks++
    if (measuring) {
      if (payload.value.success) acks++
      else refused++
      latencies.push(performance.now() - this.#sentAt)
    }
    this.#next()
  }

  #next() {
    if (!running) return
    const bytes = messages(this.#index, ++this.#sequence)
    if (measuring) upBytes += bytes.length + 5
    this.#sentAt = performance.now()
    this.#call.write(bytes)
  }
}

for (let index = 0; index < streams; index++) new Agent(index)
while (streaming < streams) await sleep(10)
await sleep(warmSeconds * 1000)
process.send?.('measuring')
measuring = true
latencies = []
const from = performance.now()
await sleep(seconds * 1000)
const measuredMs = performance.now() - from
measuring = false
running = false
await sleep(500) // what is under way
latencies.sort((a, b) => a - b)
const at = (ratio: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * ratio))] ?? 0
const result: ClientsResult = {
  seconds: measuredMs / 1000,
  acks,
  allAcks,
  refused,
  p50: at(0.5),
  p99: at(0.99),
  upBytes,
  downBytes,
  allStreamingMs,
}
process.send?.(result)
process.on('disconnect', () => process.exit())
