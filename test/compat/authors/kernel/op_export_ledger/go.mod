module exportledger

go 1.20
