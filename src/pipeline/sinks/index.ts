/**
 * Where inventory goes: one interface, a driver per type of sink, loaded when a sink of that type is declared.
 *
 *   snapshot of an inventory → Sink.deliver → durable there → Receipt
 */
export { type EnvelopeHead, envelope } from './documents/envelope.ts'
export {
  comparePositions,
  type DatabaseDeclaration,
  type Declared,
  type Delivery,
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
  type Writing,
} from './sink.ts'
