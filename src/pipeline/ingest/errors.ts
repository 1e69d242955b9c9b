import { FleetError } from '#model'

/** The batch breaks the contract: it will be refused again. `where` is the place in the batch. */
export class InvalidBatchError extends FleetError {
  override readonly name = 'InvalidBatchError'
  readonly code = 'invalid_batch'
  readonly retryable = false
  readonly where: string

  constructor(where: string, what: string) {
    super(`the batch is refused: ${where} ${what}`)
    this.where = where
  }
}

/** Nobody declared this cluster, or its connection was removed. */
export class ClusterNotConnectedError extends FleetError {
  override readonly name = 'ClusterNotConnectedError'
  readonly code = 'cluster_not_connected'
  readonly retryable = false
  readonly cluster: string

  constructor(cluster: string) {
    super(`cluster ${cluster} has no connection on this hub`)
    this.cluster = cluster
  }
}

/** Too many batches of one cluster wait for the log at once; ask again later. */
export class IngestBusyError extends FleetError {
  override readonly name = 'IngestBusyError'
  readonly code = 'ingest_busy'
  readonly retryable = true
  readonly cluster: string

  constructor(cluster: string, waiting: number) {
    super(`${waiting} batches of cluster ${cluster} already wait for the log`)
    this.cluster = cluster
  }
}

/** A difference to a batch that is not the newest of its cluster here: send the next one complete. */
export class BaseMismatchError extends FleetError {
  override readonly name = 'BaseMismatchError'
  readonly code = 'base_mismatch'
  readonly retryable = true
  readonly cluster: string

  constructor(cluster: string) {
    super(
      `the batch of cluster ${cluster} is a difference to one that is not the newest here: it must be sent complete`,
    )
    this.cluster = cluster
  }
}
