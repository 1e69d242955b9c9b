import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TokenHolders } from '../authentication.ts'
import type { ServerParts } from '../server-parts.ts'
import type { User } from '../user.ts'

/** One request on its way through the server. */
export interface Call {
  readonly server: ServerParts
  readonly request: IncomingMessage
  readonly response: ServerResponse
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
