/**
 * Where inventory goes: one interface, a driver per type of sink, loaded when a sink of that type is declared.
 *
 *   object of a sink → SinkPool.use: opened by `openSink`, kept open, with deadlines and a breaker
 *   snapshot of an inventory → Sink.deliver → durable there → Receipt
 */
export { writeWhole } from './directory.ts'
export { checksumOf, type EnvelopeHead, envelope } from './documents/envelope.ts'
export { openSink } from './open.ts'
export { type SinkObject, SinkPool, type SinkPoolOptions } from './pool.ts'
export {
  comparePositions,
  type DatabaseDeclaration,
  type DeclarationOf,
  type Declared,
  type Delivery,
  type Driver,
  type EventDeclaration,
  type Position,
  type Probe,
  type Receipt,
  type RowKey,
  type Sink,
  type SinkContext,
  type SinkDeclaration,
  SinkError,
  type SinkErrorClass,
  type SinkFamily,
  type SinkPreview,
  type SnapshotDeclaration,
  type Waits,
  type Writing,
} from './sink.ts'
