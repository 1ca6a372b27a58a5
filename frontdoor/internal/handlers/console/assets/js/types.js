// Addresses of pages about types.
export const listHref = (t) => `#/r/${t.group || 'core'}/${t.version}/${t.resource}`;
