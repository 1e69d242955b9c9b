/**
 * Credentials of a connection go to the host they were given for. Whoever may edit a connection and not read its Secret must not
 * be sent the credentials by way of an endpoint or a proxy of their own.
 *
 *   Secret with annotation   → there only
 *   kubeconfig in the Secret → where it leads itself
 *   neither                  → the first that accepts them keeps them (status.credentials), until the Secret changes
 *
 * The ledger hears of all connections of its kind, also of those that other processes read.
 */
export { endpointAnnotations, secretFor } from './annotations.ts'
export { type Destination, destinationOf } from './destination.ts'
export type { Held } from './hold.ts'
export { CredentialLedger, type Question } from './ledger.ts'
