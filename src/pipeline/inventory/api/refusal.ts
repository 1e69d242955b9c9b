import type { ServerResponse } from 'node:http'

/** An answer that is none, as who asked is told it. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  readonly headers: Readonly<Record<string, string>>
  readonly facts: object

  constructor(
    status: number,
    code: string,
    sentence: string,
    {
      headers = {},
      ...facts
    }: { readonly headers?: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>> = {},
  ) {
    super(sentence)
    this.status = status
    this.code = code
    this.headers = headers
    this.facts = facts
  }
}

export const invalidParameter = (sentence: string): Refusal => new Refusal(400, 'invalid_parameter', sentence)

/** @param seconds after which it is worth asking again */
export const unavailable = (code: string, sentence: string, seconds: number, facts: object = {}): Refusal =>
  new Refusal(503, code, sentence, { headers: { 'retry-after': String(seconds) }, ...facts })

/** On every answer: none is kept by a cache, none is taken for something else. */
export const HEADERS = { 'cache-control': 'private, no-store', 'x-content-type-options': 'nosniff' } as const

export function sendRefusal(response: ServerResponse, { status, code, message, headers, facts }: Refusal): void {
  const body = `${JSON.stringify({ error: message, code, ...facts })}\n`
  response
    .writeHead(status, {
      ...HEADERS,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...headers,
    })
    .end(body)
}
