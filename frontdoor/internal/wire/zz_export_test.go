package wire
var KindOf = kindOf
