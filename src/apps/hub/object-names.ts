/** Names of the hub's own objects, for processes of a hub and commands to one. */

/** The namespace of the embedded hub; default of the others. */
export const HUB_NAMESPACE = 'clusterpulse'
/** A ConfigMap with what `clusterpulse connect` needs to know of a running hub, in the hub's namespace. */
export const INGESTER_MAP = 'clusterpulse-ingester'
