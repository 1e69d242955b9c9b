import type { Row } from '#extract'
import type { KollectDatabaseSinkSpec, KollectEventSinkSpec, KollectSnapshotSinkSpec } from '#kinds'
import { FleetError } from '#model'
import type { OutboundGuard } from '#outbound'
import type { Logger } from '#runtime'

/** What a sink holds: rows of a table, documents that are replaced, or messages. */
export type SinkFamily = 'database' | 'snapshot' | 'event'

/** What is written where: one inventory of one cluster. */
export interface Writing {
  /** identity of the cluster in the sink; never empty */
  readonly cluster: string
  /** namespace of the inventory; '' for one of the cluster */
  readonly namespace: string
  /** name of the inventory */
  readonly inventory: string
}

/** An inventory in a sentence. */
export const writingWords = ({ cluster, namespace, inventory }: Writing): string =>
  `${namespace === '' ? 'the cluster inventory ' : `inventory ${namespace}/`}${inventory} of cluster ${cluster}`

/**
 * Where a writer stands. A later start of it has a greater epoch; within an epoch every snapshot has a greater sequence. Order never
 * comes from clocks.
 */
export interface Position {
  readonly epoch: bigint
  readonly sequence: bigint
}

/** Negative where a is before b. */
export const comparePositions = (a: Position, b: Position): number =>
  a.epoch === b.epoch ? Number(a.sequence - b.sequence) : a.epoch < b.epoch ? -1 : 1

/** Which row: by its object, as one target sees it. */
export type RowKey = Pick<Row, 'targetNamespace' | 'targetName' | 'namespace' | 'name' | 'uid'>

/** One snapshot of an inventory on its way to one sink. */
export interface Delivery {
  readonly writing: Writing
  readonly position: Position
  /** of the spec of the inventory */
  readonly generation: number
  /** whether what is missing from the rows is gone; else nothing may be deleted */
  readonly complete: boolean
  /** of the content, lower-case hex; equal for equal rows */
  readonly checksum: string
  readonly itemCount: number
  /** when the snapshot was taken, ms since 1970 */
  readonly takenAt: number
  /** all rows, in canonical order; may be asked again */
  rows(): Iterable<Row>
  /**
   * what differs from the snapshot at `base`; of use only where that is what the sink holds. `kept`: at most so many rows stand there that
   * left and are not to be deleted
   */
  readonly changes?: {
    readonly base: Position
    readonly put: Iterable<Row>
    readonly removed: readonly RowKey[]
    readonly kept?: number
  }
  /** the sink took the same content before: it is asked whether it still holds it, and whether somebody else wrote there */
  readonly isLook?: boolean
  /**
   * where the list of the documents of this inventory stood in the sink when it was last written, as a Receipt said it; what stands by
   * another path template goes once a complete snapshot stands by this one
   */
  readonly formerList?: string
  /** ceiling of one document or message in bytes; what does not fit goes in parts, or fails */
  readonly maxPartBytes: number
}

/** What a delivery did. The snapshot is durable in the sink by then, unless it says that it is partial. */
export interface Receipt {
  /** what the sink holds now; later than that of the delivery where another one came first */
  readonly position: Position
  /** rows, files or messages that were written */
  readonly written: number
  /** rows or files that were deleted */
  readonly removed: number
  /** bytes of what was written, as far as the sink counts them */
  readonly bytes: number
  /** path of the list of its documents, which a later delivery is told; absent: there is none */
  readonly listedAt?: string
  /** so far only a part is written, which is durable; the rest is for another delivery, which is due at once */
  readonly isPartial?: boolean
  /** somebody else writes under this identity: who, and since when; nothing was written or deleted */
  readonly conflict?: string
  /** what stood there was written by another cluster of the same name, which may be gone or not: a sentence */
  readonly replaced?: string
  /** rows that stand there still though the snapshot has none of them; absent: none, or such as are to stay */
  readonly kept?: number
  /** what a probe warns of is another than before */
  readonly warnsAnew?: boolean
  /** all was written, and what is gone is not deleted yet */
  readonly waits?: Waits
}

/** Why something is done later, and when the sink may be asked again. */
export interface Waits {
  /** a sentence */
  readonly message: string
  /** until then */
  readonly ms: number
}

/** How a sink answered when it was looked at. */
export interface Probe {
  readonly verified: boolean
  /** a sentence without any part of a credential; what to do where it failed */
  readonly message: string
  /** what else should be known, a sentence each */
  readonly warnings: readonly string[]
  /** what is in the way may be over in a moment */
  readonly isPassing?: boolean
}

/** One place that inventories are written to. Methods may run at the same time for different writings. */
export interface Sink extends AsyncDisposable {
  readonly family: SinkFamily
  /** Whether it can be written to, without writing rows. Never throws but for the signal. */
  probe(signal: AbortSignal): Promise<Probe>
  /**
   * Writes a snapshot so that it survives; the same one again, or an older one, changes nothing.
   * @throws SinkError
   */
  deliver(delivery: Delivery, signal: AbortSignal): Promise<Receipt>
  /**
   * Says that the writer of an inventory lives, whatever comes of its deliveries: else others may count it as gone and delete what it
   * wrote. Absent where nobody waits for it.
   * @returns as `conflict` of a Receipt, where a delivery would be refused now
   * @throws SinkError
   */
  alive?(writing: Writing, epoch: bigint, signal: AbortSignal): Promise<string | undefined>
  /**
   * Takes away what was written for an inventory that is no more, and nothing else.
   * @param formerList as that of a Delivery
   * @throws SinkError; with `retryAfterMs` where nothing is wrong, and it has to wait
   */
  remove(writing: Writing, position: Position, signal: AbortSignal, formerList?: string): Promise<void>
  /** Nothing more is written for an inventory, and what stands there stays. Absent where nobody waits for that. */
  leave?(writing: Writing): Promise<void>
  /** An example of what would be written, for `status.preview`. */
  preview(writing: Writing): SinkPreview
}

/** The fields of `status.preview` that depend on the type of a sink. */
export interface SinkPreview {
  readonly provisioningMode: string
  readonly serializationFormat?: string
  readonly objectPath?: string
  readonly git?: { readonly sampleCommitSubject: string; readonly sampleCommitBody: string }
  readonly layout?: { mode: string; content: string; prune: boolean; samplePaths: readonly string[] }
  readonly postgres?: { readonly expectedDDL: string }
  readonly kafka?: { readonly topic: string }
  readonly warnings?: readonly string[]
}

/** A sink as it is declared, with what its references lead to. */
export interface SinkDeclaration {
  readonly namespace: string
  readonly name: string
  /** `spec.cluster` of the sink, else the identity of the agent; never empty */
  readonly cluster: string
  /** values of the Secret with its credentials */
  readonly credentials: Readonly<Record<string, Uint8Array>>
  /** PEM of the CAs that it is verified with; absent: those of the system */
  readonly caBundle?: string
}

/** A declaration with the spec of its family. */
export type Declared<Spec> = SinkDeclaration & { readonly spec: Spec }
export type DatabaseDeclaration = Declared<KollectDatabaseSinkSpec>
export type SnapshotDeclaration = Declared<KollectSnapshotSinkSpec>
export type EventDeclaration = Declared<KollectEventSinkSpec>

/** The declaration of a sink, by its family. */
export interface DeclarationOf {
  readonly database: DatabaseDeclaration
  readonly snapshot: SnapshotDeclaration
  readonly event: EventDeclaration
}

/** What every sink gets from the process. */
export interface SinkContext {
  /** judges each address before it is dialled */
  readonly guard: OutboundGuard
  /** who writes: one name for this process, told to others who write under the same identity */
  readonly writer: string
  /** private folder for caches; what is in it may be lost */
  readonly directory: string
  readonly logger: Logger
  /** `original` allows what Kollect allowed */
  readonly semantics: 'strict' | 'original'
  readonly now: () => number
  /** Asked before anything is written. @throws where another replica of this process may write by now. Absent: there is none */
  readonly mustLead?: () => void
}

/**
 * Makes the sink of a declaration. It need not connect: a server that is away is told by `probe` and `deliver`.
 * @throws SinkError, terminal, for a declaration that can never work
 */
export type Driver<F extends SinkFamily> = (declaration: DeclarationOf[F], context: SinkContext) => Sink | Promise<Sink>

/** `terminal`: somebody has to change something; `forbidden`: the sink says no; `transient`: again later. */
export type SinkErrorClass = 'terminal' | 'forbidden' | 'transient'

/** A sink did not take what it was given. The sentence holds no part of a credential or a connection string. */
export class SinkError extends FleetError {
  override readonly name = 'SinkError'
  readonly code: `sink_${SinkErrorClass}`
  readonly retryable: boolean
  readonly errorClass: SinkErrorClass
  /** the sink is well, and it can be done after so long; absent: it failed */
  readonly retryAfterMs?: number
  /** it was not tried, to spare a sink in trouble, which may be asked after so long */
  readonly sparedMs?: number

  constructor(
    errorClass: SinkErrorClass,
    message: string,
    {
      retryAfterMs,
      sparedMs,
      ...options
    }: ErrorOptions & { readonly retryAfterMs?: number; readonly sparedMs?: number } = {},
  ) {
    super(message, options)
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs
    if (sparedMs !== undefined) this.sparedMs = sparedMs
    this.errorClass = errorClass
    this.code = `sink_${errorClass}`
    this.retryable = errorClass !== 'terminal'
  }
}
