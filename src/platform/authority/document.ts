import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { AuthorityUnusableError } from './errors.ts'

const Instant = Type.Number({ minimum: 0 })

const AuthorityEntry = Type.Object({
  /** SHA-256 of the certificate, hex */
  id: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  /** PEM */
  certificate: Type.String(),
  /** its key, PEM or sealed PEM in base64; absent: it is given at each start, and not kept */
  key: Type.Optional(Type.Object({ sealed: Type.Boolean(), text: Type.String() })),
  /** signs from then on, unless a later one does; ms since the Unix epoch */
  activeFromMs: Instant,
  /** no certificate it has signed ends after this */
  signedUntilMs: Instant,
  /** when it was made here; absent: elsewhere, or that was not noted */
  madeMs: Type.Optional(Instant),
})

const Revocation = Type.Object({
  cluster: Type.String(),
  /** absent: every agent of the cluster */
  agent: Type.Optional(Type.String()),
  /** certificates that were made up to then do not count */
  untilMs: Instant,
  /** when it was decided, as is written where it was; absent: it follows from nothing that is kept */
  decidedMs: Type.Optional(Instant),
})

const Document = Type.Object({
  version: Type.Literal(1),
  authorities: Type.Array(AuthorityEntry),
  revocations: Type.Array(Revocation),
})

export type AuthorityEntry = Type.Static<typeof AuthorityEntry>
export type Revocation = Type.Static<typeof Revocation>

/** All that is kept of the hub's CAs. Oldest first. */
export type AuthorityDocument = Type.Static<typeof Document>

export const writeDocument = (document: AuthorityDocument): string => JSON.stringify(document)

/** @throws AuthorityUnusableError for what this program did not write */
export function readDocument(text: string): AuthorityDocument {
  const value = parsed(text)
  if (value === undefined)
    throw new AuthorityUnusableError(
      "what is kept of the hub's CA is cut, or was written by another hand: restore it from a backup",
    )
  if (Value.Check(Document, value)) return value
  throw new AuthorityUnusableError(
    "the hub's CA is kept in a form this program does not know: restore it from a backup, or go on with the program that wrote it",
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // said by the caller
  }
}
