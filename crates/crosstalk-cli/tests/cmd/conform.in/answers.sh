# Knows the form of a ULID, and nothing else.
while read -r line; do
    id=${line#*\"id\":}; id=${id%%,*}
    case $line in
        *'"op":"id"'*) echo "{\"id\":$id,\"result\":{\"form\":\"ulid\"}}";;
        *) echo "{\"id\":$id,\"unsupported\":true}";;
    esac
done
