import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { TokenHolders } from '../authentication.ts'
import type { ServerParts } from '../server-parts.ts'
import type { User } from '../user.ts'

/** What the server reads of a request. One that came over a port is one. */
export type ApiRequest = Readable &
  Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'headersDistinct' | 'complete'> & {
    /** absent: it came from this very process */
    readonly socket?: Socket
  }

/** What the server writes its answer to. That of a request over a port is one. */
export interface ApiResponse {
  readonly headersSent: boolean
  readonly destroyed: boolean
  readonly writableEnded: boolean
  /** bytes that nobody has read yet */
  readonly writableLength: number
  setHeader(name: string, value: string | number): unknown
  appendHeader(name: string, value: string): unknown
  writeHead(code: number, headers?: Readonly<Record<string, string>>): unknown
  flushHeaders(): void
  write(chunk: string | Uint8Array): boolean
  end(chunk?: string | Uint8Array): unknown
  destroy(): unknown
  on(event: 'close', listener: () => void): unknown
}

/** One request on its way through the server. */
export interface Call {
  /** told to the caller as Audit-Id */
  readonly id: string
  readonly server: ServerParts
  readonly request: ApiRequest
  readonly response: ApiResponse
  /** HEAD is GET here; the answer leaves out its body */
  readonly method: string
  /** below the prefix the server is mounted under */
  readonly path: string
  readonly query: URLSearchParams
  readonly prefix: string
  /** every way in which a token may tell who somebody is */
  readonly holders: readonly TokenHolders[]
  /** who calls, or as whom */
  readonly user: User
  /** sent as Warning headers */
  readonly warnings: string[]
}

/** Of who calls; '' where it is this process, or the connection is gone. */
export const addressOf = ({ request }: Pick<Call, 'request'>): string => request.socket?.remoteAddress ?? ''
