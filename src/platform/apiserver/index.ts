/**
 * An embedded Kubernetes-compatible API: what kubectl and any client of the day expect, in this process, over a
 * journal on disk or memory. It is the control plane where there is no Kubernetes, and the API of every simulated cluster.
 *
 *   ApiServer.open → objects (in process)  ┐
 *   listenApi      → HTTPS, one port, many servers under path prefixes ┘ the same rules, the same events
 *
 * It promises the API's own semantics (versions, conflicts, watches, paging, finalizers, server-side apply) and that an
 * answered write survives the end of the machine. It runs no workloads. Who may do what is decided by the Roles and bindings it stores.
 */
export type { AdmittedWrite, RefusedCall, WriteObserver } from './admission.ts'
export type { TokenGrant } from './authentication.ts'
export type { ClientAuthorities } from './client-certificates.ts'
export { ObjectsLostError, ObjectsSealedError } from './journal-errors.ts'
export { openRemnant } from './journal-remnants.ts'
export { type ApiListener, type ListenOptions, listenApi } from './listen.ts'
export type { DeleteOptions, DeleteResult, ObjectKey, ObjectStore } from './objects.ts'
export type { ResourceName } from './served.ts'
export { ApiServer, type ApiServerOptions, type VirtualResource } from './server.ts'
export type { NodeProxy } from './server-parts.ts'
export { ApiError, type Status, type StatusReason } from './status.ts'
export type { ObjectStorage, StoredChange } from './storage.ts'
export type { StoreEvent } from './store.ts'
export { generateServingCertificate, type ServingCertificate } from './tls.ts'
export type { ApiObject, ManagedFieldsEntry, PrinterColumn, Schema } from './types.ts'
export { MASTERS } from './user.ts'
