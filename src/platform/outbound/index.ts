/**
 * Where the hub connects to on somebody's word, and where it does not: one guard with a rule per use.
 *
 *   host ─▶ an address? checked at once ─▶ a name? looked up, every address checked ─▶ connection
 *
 * It stands in the connectors of members (`#kube`), registries and identity providers, and in what writes to sinks, behind name resolution.
 */
export { type AddressKind, addressKind, isInternal, sameAddress } from './address.ts'
export { boundReceived, containReading, TooMuchReceivedError, UnreadableError, withBoundedSockets } from './bounded.ts'
export {
  AddressRefusedError,
  isRange,
  type Lookup,
  OutboundGuard,
  type OutboundOptions,
  type OutboundUse,
  systemNames,
} from './guard.ts'
export { type SinkAddresses, sinkHostProblem } from './sink-hosts.ts'
